import { Group, Paper, Title } from '@mantine/core';
import type { ReactNode } from 'react';

/** A part of a page: a frame with a heading, and actions beside it. */
export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" mb="xs" gap="xs">
        <Title order={2} size="h5">
          {title}
        </Title>
        {actions}
      </Group>
      {children}
    </Paper>
  );
}
