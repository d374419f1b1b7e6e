import { Button, Group, Text } from '@mantine/core';
import { useState } from 'react';
import { boardFetch } from '../api/client';
import { problemOf } from '../api/problem';
import { CopyButton } from './CopyButton';
import { ErrorPanel } from './states';
import { bytes } from './time';

/** The most that is shown at once. More would only slow the tab down: it is read with the command. */
const MOST = 4_000_000;

async function read(handle: string): Promise<{ text: string; size: number }> {
  const response = await boardFetch(`/api/v1/results/${encodeURIComponent(handle)}?length=${MOST}`);
  const text = await response.text();
  if (!response.ok) throw problemOf(response.status, undefined);
  return { text, size: Number(response.headers.get('x-result-bytes') ?? text.length) };
}

/** A result that the board cut, and all of it on request. */
export function WholeResult({ handle }: { handle: string }) {
  const [whole, setWhole] = useState<{ text: string; size: number }>();
  const [error, setError] = useState<unknown>();
  const [isReading, setReading] = useState(false);
  const command = `switchboard calls result ${handle}`;
  async function load() {
    setReading(true);
    setError(undefined);
    try {
      setWhole(await read(handle));
    } catch (fault) {
      setError(fault);
    }
    setReading(false);
  }
  return (
    <>
      <Group gap="xs">
        <Text size="sm">
          The result was large and is cut here. All of it: <span className="mono">{command}</span>
        </Text>
        <CopyButton value={command} />
        <Button size="compact-xs" variant="default" loading={isReading} onClick={() => void load()}>
          Load all
        </Button>
      </Group>
      {error !== undefined && <ErrorPanel error={error} onRetry={() => void load()} />}
      {whole && (
        <>
          <Text size="xs" c="dimmed">
            {bytes(whole.size)}
            {whole.size > MOST && `, the first ${bytes(MOST)} shown`}
          </Text>
          <pre className="output" tabIndex={0} aria-label="The whole result">
            {whole.text}
          </pre>
        </>
      )}
    </>
  );
}
