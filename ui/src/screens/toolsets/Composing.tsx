import { Button } from '@mantine/core';
import { Empty, QueryState } from '../../components/states';
import { useServers } from '../../data/queries';
import type { Tool, Toolset } from '../../data/toolsets/compose';
import { useToolset } from '../../data/toolsets/entry';
import { Composer } from './Composer';

interface ComposingProps {
  tools: Tool[];
  costs: ReadonlyMap<string, number>;
  toolsets: Toolset[];
  /** The toolset that is edited; absent for a new one. */
  edit?: string;
  /** The toolset that a new one begins as a copy of. */
  from?: string;
  onClose: () => void;
}

/** The composer with what it begins with: nothing, an entry of the file, or the tools of another toolset. */
export function Composing({ tools, costs, toolsets, edit, from, onClose }: ComposingProps) {
  const servers = useServers().data?.servers.map(({ name }) => name) ?? [];
  const detail = useToolset(edit ?? '', edit !== undefined);
  const shared = { tools, costs, servers, taken: toolsets.map(({ name }) => name), onClose };
  if (edit === undefined) {
    const copied = toolsets.find(({ name }) => name === from);
    const start = copied && {
      description: copied.description,
      when_to_use: copied.when_to_use ?? '',
      tools: copied.members,
    };
    return <Composer key={`from ${from}`} {...shared} start={start} />;
  }
  return (
    <QueryState query={detail}>
      {({ declared, etag }) =>
        declared == null || etag == null ? (
          <Empty title={`${edit} has no entry in the configuration`} action={<Button onClick={onClose}>Close</Button>}>
            Its server makes it. Copy it to a new toolset to choose its tools.
          </Empty>
        ) : (
          <Composer key={edit} {...shared} edited={{ name: edit, entry: declared, etag }} />
        )
      }
    </QueryState>
  );
}
