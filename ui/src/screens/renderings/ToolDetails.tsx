import { ActionIcon, Alert, Group, Text, Title } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { CopyButton } from '../../components/CopyButton';
import type { Row } from '../../data/renderings/renderings';
import { sessionToolsQuery } from '../../data/session/queries';

interface ToolDetailsProps {
  session: string;
  name: string;
  row?: Row;
  providers: string[];
  onClose: () => void;
}

const pretty = (value: unknown): string => JSON.stringify(value, null, 2) ?? 'none';

function Json({ value, label }: { value: unknown; label: string }) {
  const text = pretty(value);
  return (
    <>
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <CopyButton value={text} name={`Copy: ${label}`} />
    </>
  );
}

/** One tool: the server's schema beside what each provider is told, with the reason for each difference. */
export function ToolDetails({ session, name, row, providers, onClose }: ToolDetailsProps) {
  const tools = useQuery(sessionToolsQuery(session));
  const schema = tools.data?.tools.find((tool) => tool.name === name)?.input_schema;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [name]);
  return (
    <section aria-labelledby="tool-title">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5" id="tool-title" tabIndex={-1} ref={heading} className="mono">
          {name}
        </Title>
        <ActionIcon variant="subtle" color="gray" aria-label="Close the tool" onClick={onClose}>
          <IconX size={18} />
        </ActionIcon>
      </Group>
      {row === undefined && <Alert color="yellow">This session has no tool of this name any more.</Alert>}
      <div className="declarations">
        <div>
          <Title order={3} size="h6">
            The server&apos;s schema
          </Title>
          <Json value={schema} label="The server's schema" />
        </div>
        {row &&
          providers.map((provider) => {
            const cell = row.cells[provider];
            const missing = row.missing[provider];
            return (
              <div key={provider}>
                <Title order={3} size="h6">
                  {provider}
                  {cell && ` · ${cell.tokens} tokens`}
                </Title>
                {missing && (
                  <Alert
                    color="yellow"
                    variant="light"
                    title={missing.kind}
                    styles={{ title: { color: 'var(--mantine-color-text)' } }}
                  >
                    {missing.reason}
                  </Alert>
                )}
                {cell &&
                  (cell.rewrites.length === 0 ? (
                    <Text size="sm">Nothing was rewritten.</Text>
                  ) : (
                    <ul className="rewrites">
                      {cell.rewrites.map(({ path, what, reason }, index) => (
                        <li key={index}>
                          <span className="mono">{path || 'the whole schema'}</span>: {what}. {reason}
                        </li>
                      ))}
                    </ul>
                  ))}
                {cell && <Json value={cell.declaration} label={`What ${provider} is told`} />}
              </div>
            );
          })}
      </div>
    </section>
  );
}
