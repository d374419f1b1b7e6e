import { Paper, Text, Title } from '@mantine/core';
import { DiffView } from './DiffView';
import { yaml } from './yaml';

interface WrittenProps {
  /** The entry in force; `undefined` if there is none. */
  before: unknown;
  /** The entry after the save; `undefined` if it is removed. */
  after: unknown;
  /** Where the entry stands. */
  place: string;
}

/** The entry of the configuration file before and after a save. Secrets are `***` on both sides. */
export function Written({ before, after, place }: WrittenProps) {
  const [old, next] = [yaml(before), yaml(after)];
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5">
        What will be written
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        {old === next
          ? 'Nothing differs from the file yet.'
          : `In ${place} of the configuration file. Comments and the order of the rest stay.`}
      </Text>
      {old !== next && <DiffView before={old} after={next} label="What will be written" />}
    </Paper>
  );
}
