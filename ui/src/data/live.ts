/** Events of the board as changes of the cached queries, and hooks for screens that want the events themselves. */
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { type BoardEvent, eventStream, type StreamState } from './event-stream';
import { queryClient } from './query-client';

/** Which queries an event makes old, by the first word of their key. */
const STALE: Record<string, string[]> = {
  catalog: [
    'tools',
    'tool',
    'servers',
    'server',
    'toolsets',
    'session-tools',
    'session-toolsets',
    'renderings',
    'declaration',
  ],
  server: ['servers', 'server'],
  server_log: ['server-log'],
  call_started: ['stats-now'],
  call_ended: ['calls', 'call', 'stats-now'],
  session: ['sessions', 'session', 'session-tools', 'session-toolsets', 'renderings'],
  turn: ['turns', 'turn', 'session', 'history'],
  config: ['config', 'servers', 'tools', 'toolsets', 'keys', 'declaration'],
  definition: ['definitions', 'tools'],
};

/** Many events of one kind in a moment refetch once. */
const GATHER = 150;
const pending = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

function apply(event: BoardEvent): void {
  if (event.type === 'reset' || event.type === 'reconnected') {
    void queryClient.invalidateQueries();
    return;
  }
  if (event.type === 'refused') {
    void queryClient.invalidateQueries({ queryKey: ['me'] });
    return;
  }
  for (const name of STALE[event.type] ?? []) pending.add(name);
  if (pending.size === 0 || timer !== undefined) return;
  timer = setTimeout(() => {
    timer = undefined;
    const names = new Set(pending);
    pending.clear();
    void queryClient.invalidateQueries({ predicate: ({ queryKey }) => names.has(String(queryKey[0])) });
  }, GATHER);
}

/** Starts the stream of this tab; the result ends it. */
export function startLive(): () => void {
  const off = eventStream.onEvent(apply);
  eventStream.start();
  return () => {
    off();
    eventStream.stop();
  };
}

/** Whether what is on the screen is live, and since when. */
export function useStreamState(): StreamState {
  return useSyncExternalStore(eventStream.onState, eventStream.state);
}

/** Calls `handle` for every event of these types while the component is on the screen. */
export function useBoardEvents(types: string[], handle: (event: BoardEvent) => void): void {
  const latest = useRef(handle);
  useEffect(() => {
    latest.current = handle;
  });
  const key = types.join(' ');
  useEffect(() => {
    const wanted = new Set(key.split(' '));
    return eventStream.onEvent((event) => {
      if (wanted.has(event.type)) latest.current(event);
    });
  }, [key]);
}
