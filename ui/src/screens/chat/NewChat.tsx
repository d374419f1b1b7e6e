import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useNavigate } from 'react-router';
import { useDraft, writeDraft } from '../../components/draft';
import { ErrorPanel } from '../../components/states';
import { createSession } from '../../data/chat/queries';
import { beginTurn } from '../../data/chat/send';
import { providersQuery, useProviders, useTools } from '../../data/queries';
import { Composer } from './Composer';
import { type ModelChoice, ModelBar } from './ModelBar';

const TITLE = 60;

export const titleOf = (text: string): string => {
  const line = text.trim().split('\n')[0];
  return line.length > TITLE ? `${line.slice(0, TITLE - 1)}…` : line;
};

/** What the demo model understands, with a tool that is there. */
function examples(tools: string[]): string[] {
  const sum = tools.includes('local.sum_numbers');
  return ['Hello, which tools do you see?', ...(sum ? ['/call local__sum_numbers {"a": 19, "b": 23}'] : []), '/help'];
}

/** A chat that has not begun. The session is made with the first message. */
export function NewChat() {
  const [text, setText] = useDraft('chat');
  const [choice, setChoice] = useState<ModelChoice>({});
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const providers = useProviders();
  const tools = useTools();
  const provider = choice.provider ?? providers.data?.providers[0]?.name;
  const kind = providers.data?.providers.find(({ name }) => name === provider)?.kind;
  useEffect(() => {
    document.title = 'Chat · Switchboard';
  }, []);

  async function begin() {
    setBusy(true);
    setError(undefined);
    try {
      // Who writes faster than the list of providers comes gets the same provider.
      const listed = provider ?? (await queries.ensureQueryData(providersQuery)).providers[0]?.name;
      const session = await createSession({ ...choice, provider: listed, title: titleOf(text) });
      writeDraft('chat', '');
      beginTurn(session.id, text);
      await navigate(`/chat/${encodeURIComponent(session.id)}`);
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  }

  return (
    <>
      <div className="chat-scroll">
        <Stack align="center" gap="sm" py="xl" ta="center">
          <Title order={1} size="h3">
            New chat
          </Title>
          <Text maw={520}>
            {kind === 'demo'
              ? 'The demo model needs no key and no network. It does what it is told; try one of these:'
              : 'The model sees the tools of this board and may call them.'}
          </Text>
          {kind === 'demo' && (
            <Group justify="center" gap="xs">
              {examples(tools.data?.tools.map(({ name }) => name) ?? []).map((example) => (
                <Button key={example} className="wraps" size="xs" variant="default" onClick={() => setText(example)}>
                  {example}
                </Button>
              ))}
            </Group>
          )}
        </Stack>
      </div>
      {error !== undefined && <ErrorPanel error={error} onRetry={() => void begin()} />}
      <Composer text={text} onText={setText} onSend={() => void begin()} isBusy={isBusy}>
        <ModelBar value={choice} onChange={(change) => setChoice({ ...choice, ...change })} />
      </Composer>
    </>
  );
}
