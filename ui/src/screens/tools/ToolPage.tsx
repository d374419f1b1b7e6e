import { Anchor, Badge, Group, Tabs, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { Link, useParams } from 'react-router';
import { client, unwrap } from '../../api/client';
import type { ToolView } from '../../api/types';
import { CopyButton } from '../../components/CopyButton';
import { DetailPage } from '../../components/DetailPage';
import { hasKeptForm } from '../../components/form-draft';
import { useSearch } from '../../components/search-params';
import { StateBadge } from '../../components/StateBadge';
import { Loading } from '../../components/states';
import { useRole } from '../../data/me';
import { Definition } from './Definition';
import { mcpName } from './snippets';
import { TryTool } from './TryTool';

const ArgumentEditor = lazy(() => import('./ArgumentEditor'));

/** The hints of a tool in words. They are claims of its server. */
function Hints({ tool }: { tool: ToolView }) {
  const hints = (tool.annotations ?? {}) as Record<string, unknown>;
  const words: [string, string][] = [];
  if (hints.readOnlyHint === true) words.push(['read-only', 'green']);
  if (hints.destructiveHint === true) words.push(['destructive', 'red']);
  if (hints.idempotentHint === true) words.push(['idempotent', 'blue']);
  if (hints.openWorldHint === true) words.push(['open world', 'gray']);
  return words.map(([word, color]) => (
    <Badge key={word} color={color} variant="light" className="state" title="What its server says of it">
      {word}
    </Badge>
  ));
}

function Tool({ tool }: { tool: ToolView }) {
  const [search, setSearch] = useSearch();
  const mayDeclare = useRole('operator');
  const tab = search.get('tab') ?? 'try';
  return (
    <>
      <Group gap="xs">
        <StateBadge
          state={tool.available ? 'available' : 'unavailable'}
          label={tool.available ? 'available' : `${tool.server} is not connected`}
        />
        <Hints tool={tool} />
        {tool.title !== null && (
          <Text size="sm" c="dimmed" className="mono">
            {tool.name}
          </Text>
        )}
        <Text size="sm" c="dimmed">
          MCP name <span className="mono">{mcpName(tool)}</span>
        </Text>
        <CopyButton value={mcpName(tool)} name="Copy the MCP name" />
        <Anchor component={Link} to={`/calls?tool=${encodeURIComponent(tool.name)}`} size="sm">
          Its calls
        </Anchor>
      </Group>
      {tool.description !== null && <Text style={{ whiteSpace: 'pre-wrap' }}>{tool.description}</Text>}
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(next) => setSearch(next === 'try' || next === null ? {} : { tab: next }, { replace: true })}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="try">Try it</Tabs.Tab>
          <Tabs.Tab value="definition">Definition and limits</Tabs.Tab>
          {mayDeclare && (
            <Tabs.Tab value="arguments">
              Edit arguments{tab !== 'arguments' && hasKeptForm(`arguments:${tool.name}`) && ' (not saved)'}
            </Tabs.Tab>
          )}
        </Tabs.List>
        <Tabs.Panel value="try">
          <TryTool tool={tool} />
        </Tabs.Panel>
        <Tabs.Panel value="definition">
          <Definition tool={tool} />
        </Tabs.Panel>
        <Tabs.Panel value="arguments">
          <Suspense fallback={<Loading />}>
            <ArgumentEditor key={tool.name} name={tool.name} />
          </Suspense>
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

export function ToolPage() {
  const name = useParams().name ?? '';
  const query = useQuery({
    queryKey: ['tool', name],
    queryFn: ({ signal }) => unwrap(client.GET('/api/v1/tools/{name}', { params: { path: { name } }, signal })),
  });
  return (
    <DetailPage list={{ to: '/tools', label: 'Tools' }} name={query.data?.title ?? name} tab={name} query={query}>
      {(tool) => <Tool tool={tool} />}
    </DetailPage>
  );
}
