import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { ErrorPanel } from '../../components/states';
import type { SessionView } from '../../data/chat/queries';
import { countOf } from '../../data/session/draft';
import { type ChangePreview, usePreview } from '../../data/session/queries';
import { Names } from './Names';
import type { StagedChange } from './use-session-draft';

const signed = (value: number): string => (value > 0 ? `+${value}` : value < 0 ? `−${-value}` : '±0');

/** What the change would add, take away and cost. */
function Effect({ preview }: { preview: ChangePreview }) {
  const nothing = preview.added.length + preview.removed.length + preview.changed.length === 0;
  return (
    <Stack gap={4} data-testid="effect">
      {nothing && <Text size="sm">The tools stay the same.</Text>}
      <Names word="Adds" names={preview.added} />
      <Names word="Removes" names={preview.removed} />
      <Names word="Changes" names={preview.changed} />
      <Text size="sm">
        {Object.entries(preview.tokens)
          .map(([provider, { before, after }]) => `${provider}: ${after} tokens (${signed(after - before)})`)
          .join(' · ')}
      </Text>
    </Stack>
  );
}

/** The bar that appears with the first change: what it does, and when it holds. */
export function ChangeBar({
  session,
  change,
  isRunning,
}: {
  session: SessionView;
  change: StagedChange;
  isRunning: boolean;
}) {
  const preview = usePreview(session.id, change.draft, change.isEmpty, session.tools_revision);
  if (change.isEmpty) return null;
  const count = countOf(change.draft);
  return (
    <section className="change-bar" aria-label="Changes that are not made yet">
      <Stack gap="xs">
        {change.conflict && (
          <Alert
            color="yellow"
            variant="light"
            title="Somebody else changed this session"
            role="alert"
            styles={{ title: { color: 'var(--mantine-color-text)' } }}
          >
            <Text size="sm">
              Your change was made for revision {change.conflict.from}; the session is at {session.tools_revision}.
              Nothing of yours was applied. It is still here: look at what it does now, and apply it again.
            </Text>
            {change.conflict.steps?.map((step) => (
              <div key={step.tools_revision}>
                <Names word={`Revision ${step.tools_revision} added`} names={step.added} />
                <Names word={`Revision ${step.tools_revision} removed`} names={step.removed} />
                <Names word={`Revision ${step.tools_revision} changed`} names={step.changed} />
              </div>
            ))}
          </Alert>
        )}
        {change.error !== undefined && <ErrorPanel error={change.error} />}
        <Text fw={600} size="sm">
          {count} {count === 1 ? 'change' : 'changes'} not made yet
        </Text>
        {preview.data && <Effect preview={preview.data} />}
        {preview.isError && <ErrorPanel error={preview.error} onRetry={() => void preview.refetch()} />}
        <Group gap="xs">
          {isRunning ? (
            <>
              <Button size="xs" onClick={() => change.apply()} loading={change.isBusy}>
                From the next turn on
              </Button>
              <Button size="xs" variant="default" onClick={() => change.apply('now')} disabled={change.isBusy}>
                Now: ask the model again
              </Button>
            </>
          ) : (
            <Button size="xs" onClick={() => change.apply()} loading={change.isBusy}>
              Apply
            </Button>
          )}
          <Button size="xs" variant="default" onClick={change.discard} disabled={change.isBusy}>
            Discard
          </Button>
        </Group>
      </Stack>
    </section>
  );
}
