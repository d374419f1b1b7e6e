import { Group, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect } from 'react';

/** The frame of a screen: its heading, a line about it, actions at the right, and the title of the tab. */
export function Page(props: {
  title: ReactNode;
  tab?: string;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const tab = props.tab ?? (typeof props.title === 'string' ? props.title : '');
  useEffect(() => {
    document.title = tab === '' ? 'Switchboard' : `${tab} · Switchboard`;
  }, [tab]);
  return (
    <Stack gap="md">
      <Group justify="space-between" align="flex-start" gap="sm">
        <div>
          <Title order={1} size="h3">
            {props.title}
          </Title>
          {props.about !== undefined && (
            <Text c="dimmed" size="sm">
              {props.about}
            </Text>
          )}
        </div>
        {props.actions}
      </Group>
      {props.children}
    </Stack>
  );
}
