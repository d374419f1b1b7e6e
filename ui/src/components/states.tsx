/** The states that every view has besides its data: loading, empty, failed, and old data. */
import { Alert, Button, Code, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { IconAlertTriangle, IconPlugConnectedX } from '@tabler/icons-react';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiError } from '../api/problem';
import { Ago } from './Ago';

export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <Stack gap="xs" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <Skeleton key={row} height={28} radius="sm" />
      ))}
    </Stack>
  );
}

export interface EmptyProps {
  title: string;
  children?: ReactNode;
  /** The next step: one button or link. */
  action?: ReactNode;
  /** A command to copy instead. */
  command?: string;
}

export function Empty({ title, children, action, command }: EmptyProps) {
  return (
    <Stack align="center" gap="sm" py="xl" px="md" ta="center">
      <Title order={2} size="h4">
        {title}
      </Title>
      {children !== undefined && <Text maw={520}>{children}</Text>}
      {command !== undefined && <Code block>{command}</Code>}
      {action}
    </Stack>
  );
}

function words(error: unknown): { title: string; detail: string; hint?: string } {
  if (error instanceof ApiError) {
    const { title, detail } = error.problem;
    return { title, detail: detail === title ? '' : detail, hint: error.hint };
  }
  return { title: 'Something went wrong', detail: error instanceof Error ? error.message : String(error) };
}

export function ErrorPanel({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { title, detail, hint } = words(error);
  const isAway = error instanceof ApiError && error.status === 0;
  return (
    <Alert
      color="red"
      variant="light"
      title={title}
      role="alert"
      icon={isAway ? <IconPlugConnectedX /> : <IconAlertTriangle />}
    >
      <Stack gap="xs" align="flex-start">
        {detail !== '' && <Text size="sm">{detail}</Text>}
        {hint !== undefined && (
          <Text size="sm">
            <strong>What to do:</strong> {hint}
          </Text>
        )}
        {onRetry && (
          <Button size="xs" variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** A fetch failed, and what is on the screen is from before. */
function OldData({ query }: { query: UseQueryResult<unknown> }) {
  const { title } = words(query.error);
  return (
    <Alert color="yellow" variant="light" py={6} icon={<IconPlugConnectedX />} role="status">
      <Group gap="xs">
        <Text size="sm">
          {title}. This is what it said <Ago at={query.dataUpdatedAt} />.
        </Text>
        <Button size="compact-xs" variant="default" onClick={() => void query.refetch()}>
          Try again
        </Button>
      </Group>
    </Alert>
  );
}

export interface QueryStateProps<T> {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
  loading?: ReactNode;
}

/** Shows the data of a query, or why there is none. Data of before stays on the screen when a fetch fails, with its age. */
export function QueryState<T>({ query, children, loading }: QueryStateProps<T>) {
  if (query.data !== undefined) {
    return (
      <>
        {query.isError && <OldData query={query} />}
        {children(query.data)}
      </>
    );
  }
  if (query.isError) return <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />;
  return loading ?? <Loading />;
}
