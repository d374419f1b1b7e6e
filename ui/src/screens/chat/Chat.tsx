import { Alert, Anchor, Button, Group, Menu, Text, Title, VisuallyHidden } from '@mantine/core';
import { IconArrowDown, IconDownload, IconPlugConnectedX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { Link } from 'react-router';
import { useDraft } from '../../components/draft';
import { useFollowEnd } from '../../components/follow-end';
import { Empty, ErrorPanel, QueryState } from '../../components/states';
import { asMarkdown, type Entry, entriesOf, merged } from '../../data/chat/conversation';
import { changeSession, useHistory, useLiveChat, useSession } from '../../data/chat/queries';
import { beginTurn, retryFrom, rewriteMessage } from '../../data/chat/send';
import { isOver } from '../../data/chat/turn';
import { timeOfTurn } from '../../data/chat/turn-id';
import { sessionToolsQuery } from '../../data/session/queries';
import { AnswerView } from './AnswerView';
import type { KnownTool, KnownTools } from './CallCard';
import { chatName } from './ChatList';
import { Composer } from './Composer';
import { ModelBar, type ModelChoice } from './ModelBar';
import { save } from './save';
import { UserMessage } from './UserMessage';

function useKnownTools(id: string): KnownTools {
  const { data } = useQuery(sessionToolsQuery(id));
  return useMemo(
    () =>
      new Map(
        data?.tools.map(({ name, canonical_name, server, tool }): [string, KnownTool] => [
          name,
          { canonical: canonical_name, server, tool },
        ]),
      ),
    [data],
  );
}

/** One chat: what was said, what is being said, and where to go on. */
export function Chat({ id }: { id: string }) {
  const session = useSession(id);
  const history = useHistory(id);
  const { chat, state } = useLiveChat(id);
  const tools = useKnownTools(id);
  const [text, setText] = useDraft(`chat:${id}`);
  const [fault, setFault] = useState<unknown>();
  const { viewport, content, isFollowing, toEnd } = useFollowEnd();

  const messages = history.data?.messages;
  const entries = useMemo(() => merged(entriesOf(messages ?? []), state.turns), [messages, state.turns]);
  const running = state.turns.findLast((turn) => !isOver(turn));
  const name = session.data ? chatName(session.data) : id;

  useEffect(() => {
    document.title = `${name} · Chat · Switchboard`;
  }, [name]);

  // A message that was not taken goes back to where it was written.
  useEffect(() => {
    if (state.refusal === undefined || state.refusal.text === '') return;
    const refused = state.refusal.text;
    queueMicrotask(() => setText(refused));
  }, [state.refusal, setText]);

  const choose = (change: ModelChoice) => {
    setFault(undefined);
    changeSession(id, change).catch(setFault);
  };
  const send = () => {
    beginTurn(id, text);
    setText('');
    toEnd();
  };

  if (session.isError && session.data === undefined) {
    return <ErrorPanel error={session.error} onRetry={() => void session.refetch()} />;
  }
  const lastUser = entries.findLast((entry) => entry.kind === 'user');
  return (
    <>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Title order={1} size="h4" lineClamp={1}>
          {name}
        </Title>
        <Group gap="xs" wrap="nowrap">
          <Anchor component={Link} to={`/sessions/${encodeURIComponent(id)}`} size="sm">
            {tools.size} tools
          </Anchor>
          <Export id={id} name={name} entries={entries} />
        </Group>
      </Group>
      <div
        className="chat-scroll"
        ref={viewport}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Conversation"
        data-following={isFollowing}
      >
        <div ref={content}>
          <QueryState query={history}>
            {() =>
              entries.length === 0 ? (
                <Empty title="Nothing was said yet">
                  Say something below. The model may call the tools of this session.
                </Empty>
              ) : (
                <Entries
                  entries={entries}
                  tools={tools}
                  count={messages?.length ?? 0}
                  lastUser={lastUser?.kind === 'user' ? lastUser.index : undefined}
                  session={running === undefined ? id : undefined}
                  onFault={setFault}
                />
              )
            }
          </QueryState>
        </div>
      </div>
      <Announcer entries={entries} isRunning={running !== undefined} />
      {state.isLost && (
        <Alert color="yellow" variant="light" py={6} icon={<IconPlugConnectedX />} role="status">
          The board does not answer. The turn is picked up again as soon as it does.
        </Alert>
      )}
      {state.refusal && <ErrorPanel error={state.refusal.error} onRetry={() => chat.dismissRefusal()} />}
      {fault !== undefined && <ErrorPanel error={fault} />}
      <div className="composer-place">
        {!isFollowing && (
          <Button
            className="to-end"
            size="xs"
            variant="default"
            leftSection={<IconArrowDown size={14} />}
            onClick={toEnd}
          >
            To the end
          </Button>
        )}
        <Composer
          text={text}
          onText={setText}
          onSend={send}
          onStop={running ? () => void chat.cancel().catch(setFault) : undefined}
        >
          {session.data && <ModelBar value={session.data} onChange={choose} />}
        </Composer>
        {running && (
          <Text size="xs" c="dimmed">
            Another provider, model or strategy holds from the next message on.
          </Text>
        )}
      </div>
    </>
  );
}

/** Entries above these are drawn when they come into view. */
const RECENT = 40;
/** A long conversation begins with its newest entries; so many more come with each step back. */
const SHOWN = 80;

interface EntriesProps {
  entries: Entry[];
  tools: KnownTools;
  count: number;
  lastUser?: number;
  /** The session, while it takes messages. */
  session?: string;
  onFault: (error: unknown) => void;
}

function Entries({ entries, tools, count, lastUser, session, onFault }: EntriesProps) {
  const onRewrite = useMemo(
    () =>
      session === undefined
        ? undefined
        : ({ index, text, persist }: { index: number; text: string; persist: boolean }) =>
            void rewriteMessage(session, index, text, persist).catch(onFault),
    [session, onFault],
  );
  const onRetry = useMemo(
    () =>
      session === undefined || lastUser === undefined
        ? undefined
        : () => void retryFrom(session, lastUser).catch(onFault),
    [session, lastUser, onFault],
  );
  // New entries come at the end and push none out of sight.
  const [hidden, setHidden] = useState(() => Math.max(0, entries.length - SHOWN));
  const first = Math.min(hidden, Math.max(0, entries.length - SHOWN));
  const drawn = entries.slice(first).map((entry, index) => {
    const place = first + index;
    return entry.kind === 'answer' ? (
      <AnswerView
        key={entry.key}
        turn={entry.turn}
        isOld={place < entries.length - RECENT}
        latencyMs={entry.latencyMs}
        tools={tools}
        onRetry={place === entries.length - 1 ? onRetry : undefined}
      />
    ) : (
      <UserMessage
        key={entry.key}
        entry={entry}
        at={timeOfAnswer(entries[place + 1])}
        after={count - entry.index - 1}
        onRewrite={onRewrite}
      />
    );
  });
  return (
    <>
      {first > 0 && (
        <Group justify="center" py="sm">
          <Button size="xs" variant="default" onClick={() => setHidden(Math.max(0, first - SHOWN))}>
            Show {Math.min(SHOWN, first)} earlier of {first}
          </Button>
        </Group>
      )}
      {drawn}
    </>
  );
}

/** A message was said when the turn that answers it began. */
function timeOfAnswer(entry: Entry | undefined): number | undefined {
  return entry?.kind === 'answer' ? timeOfTurn(entry.turn.id) : undefined;
}

/** Tells a screen reader when an answer begins and what it is, instead of every word of it. */
function Announcer({ entries, isRunning }: { entries: Entry[]; isRunning: boolean }) {
  const last = entries.at(-1);
  const said =
    last?.kind === 'answer'
      ? last.turn.steps.flatMap((step) => (step.kind === 'text' ? [step.text] : [])).join(' ')
      : '';
  return <VisuallyHidden role="status">{isRunning ? 'The model answers' : said.slice(-500)}</VisuallyHidden>;
}

function Export({ id, name, entries }: { id: string; name: string; entries: Entry[] }) {
  const history = useHistory(id);
  const json = () => save(`${id}.json`, 'application/json', JSON.stringify(history.data, null, 2));
  const markdown = () => save(`${id}.md`, 'text/markdown', asMarkdown(name, entries));
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button size="xs" variant="default" leftSection={<IconDownload size={14} />} disabled={entries.length === 0}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={json}>JSON, to import elsewhere</Menu.Item>
        <Menu.Item onClick={markdown}>Markdown, to read</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
