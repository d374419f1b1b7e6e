import { Button, NativeSelect, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { client, unwrap } from '../../api/client';
import type { ServerDetail } from '../../api/types';
import { LongText } from '../../components/Result';
import { Section } from '../../components/Section';
import { QueryState } from '../../components/states';
import { useBoardEvents } from '../../data/live';

const KEPT = 200;

/** What a program has written to its standard error, and the log messages that arrive while the page is open. */
export function ServerLog({ server }: { server: ServerDetail }) {
  const [lines, setLines] = useState(100);
  const [messages, setMessages] = useState<string[]>([]);
  const isProgram = server.transport === 'stdio';
  const query = useQuery({
    queryKey: ['server-log', server.name, lines],
    queryFn: ({ signal }) =>
      unwrap(
        client.GET('/api/v1/servers/{name}/log', {
          params: { path: { name: server.name }, query: { lines } },
          signal,
        }),
      ),
    enabled: isProgram,
    placeholderData: (before) => before,
  });
  useBoardEvents(['server_log'], ({ data }) => {
    if (data.server === server.name)
      setMessages((old) => [...old, `${String(data.level ?? 'info')}: ${String(data.text ?? '')}`].slice(-KEPT));
  });
  return (
    <>
      {isProgram && (
        <Section
          title="Standard error"
          actions={
            <>
              <NativeSelect
                size="xs"
                aria-label="Lines of the log"
                data={['100', '300', '1000'].map((value) => ({ value, label: `last ${value} lines` }))}
                value={String(lines)}
                onChange={(event) => setLines(Number(event.currentTarget.value))}
              />
              <Button size="xs" variant="default" loading={query.isFetching} onClick={() => void query.refetch()}>
                Read again
              </Button>
            </>
          }
        >
          <QueryState query={query}>
            {(log) =>
              log.lines.length === 0 ? (
                <Text size="sm" c="dimmed">
                  {server.error === null
                    ? 'It has written nothing.'
                    : 'No process runs now. What the last one said at its end is part of the error above.'}
                </Text>
              ) : (
                <div className="log">
                  <LongText text={log.lines.map(({ text }) => text).join('\n')} label="Standard error of the server" />
                </div>
              )
            }
          </QueryState>
        </Section>
      )}
      {messages.length > 0 && (
        <Section title="Log messages since this page was opened">
          <div className="log">
            <LongText text={messages.join('\n')} label="Log messages of the server" />
          </div>
        </Section>
      )}
    </>
  );
}
