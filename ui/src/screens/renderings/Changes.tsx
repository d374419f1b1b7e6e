import { Select, Stack, Text, Title } from '@mantine/core';
import { DiffView } from '../../components/DiffView';
import { QueryState } from '../../components/states';
import { seenDeclaration, useDeltas } from '../../data/renderings/queries';
import type { Delta, Rendering } from '../../data/renderings/renderings';

/** The board keeps the tools of this many steps. */
const KEPT = 8;

const APPLY: Record<string, string> = {
  nothing: 'Nothing has to be told.',
  append:
    'The conversation can be told at its end; the list of tools, and with it the cache of the prompt, stays as it was.',
  resend: 'The whole list has to be sent again.',
};

interface ChangesProps {
  session: string;
  providers: string[];
  revision: number;
  since?: number;
  onSince: (revision: number | undefined) => void;
  renderings: Rendering[];
}

/** What changed between an earlier revision and this one, for each provider. */
export function Changes({ session, providers, revision, since, onSince, renderings }: ChangesProps) {
  const deltas = useDeltas(session, providers, since !== undefined && since < revision ? since : undefined);
  const first = Math.max(1, revision - KEPT);
  const choices = Array.from({ length: revision - first }, (_, place) => String(revision - 1 - place));
  if (since !== undefined && since < revision && !choices.includes(String(since))) choices.push(String(since));
  return (
    <section aria-labelledby="changes-title">
      <Title order={2} size="h5" id="changes-title" mb="xs">
        Changes between revisions
      </Title>
      {choices.length === 0 ? (
        <Text size="sm">The tools have not changed since the session was made.</Text>
      ) : (
        <Select
          label={`Compare revision ${revision} with`}
          placeholder="an earlier revision"
          data={choices.map((value) => ({ value, label: `revision ${value}` }))}
          value={since?.toString() ?? null}
          onChange={(value) => onSince(value === null ? undefined : Number(value))}
          clearable
          clearButtonProps={{ 'aria-label': 'Compare with none' }}
          w={220}
          mb="xs"
        />
      )}
      {since !== undefined && since < revision && (
        <QueryState query={deltas}>
          {(data) => (
            <Stack gap="sm">
              {providers.map((provider) => (
                <ProviderChanges
                  key={provider}
                  session={session}
                  provider={provider}
                  since={since}
                  delta={data[provider] ?? null}
                  rendering={renderings.find((each) => each.provider === provider)}
                />
              ))}
            </Stack>
          )}
        </QueryState>
      )}
    </section>
  );
}

const text = (value: unknown): string => (value === undefined ? '' : JSON.stringify(value, null, 2));

interface ProviderChangesProps {
  session: string;
  provider: string;
  since: number;
  delta: Delta | null;
  rendering?: Rendering;
}

function ProviderChanges({ session, provider, since, delta, rendering }: ProviderChangesProps) {
  if (delta === null) {
    return (
      <Text size="sm">
        <strong>{provider}</strong>: the board no longer knows revision {since}; send the whole list.
      </Text>
    );
  }
  const now = (name: string) => rendering?.explained?.find((tool) => tool.name === name)?.declaration;
  const before = (name: string) => seenDeclaration(session, provider, since, name);
  const total = delta.added.length + delta.removed.length + delta.changed.length;
  return (
    <div data-provider={provider}>
      <Text size="sm">
        <strong>{provider}</strong>: {delta.added.length} added, {delta.removed.length} removed, {delta.changed.length}{' '}
        changed. {total === 0 ? 'It is told the same.' : (APPLY[delta.apply] ?? delta.apply)} {delta.reason ?? ''}
      </Text>
      {delta.added.map((name) => (
        <ToolChange key={name} name={name} word="added" before="" after={text(now(name))} />
      ))}
      {delta.removed.map((name) => (
        <ToolChange key={name} name={name} word="removed" before={text(before(name))} after="" />
      ))}
      {delta.changed.map((name) => (
        <ToolChange key={name} name={name} word="changed" before={text(before(name))} after={text(now(name))} />
      ))}
    </div>
  );
}

function ToolChange({ name, word, before, after }: { name: string; word: string; before: string; after: string }) {
  const isUnseen = word !== 'added' && before === '';
  return (
    <details>
      <summary>
        <span className="mono">{name}</span> {word}
      </summary>
      {isUnseen && (
        <Text size="sm" c="dimmed">
          The earlier text is not known: this tab had not opened that revision.
        </Text>
      )}
      {(before !== '' || after !== '') && <DiffView before={before} after={after} label={`${name}: ${word}`} />}
    </details>
  );
}
