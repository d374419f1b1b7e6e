import type { SessionView } from '../../data/chat/queries';

/** The kinds of sessions in words. */
export const KINDS: Record<string, { word: string; color: string }> = {
  endpoint: { word: 'chat', color: 'blue' },
  client: { word: 'MCP client', color: 'teal' },
  principal: { word: 'stateless clients', color: 'gray' },
};

export const kindOf = (kind: string): { word: string; color: string } => KINDS[kind] ?? { word: kind, color: 'gray' };

export function nameOf({ title, clients, id }: Pick<SessionView, 'title' | 'clients' | 'id'>): string {
  return title || clients?.find(({ name }) => name)?.name || id;
}

/** The sessions that hold every word, of one kind if it is given. */
export function matchingSessions(sessions: SessionView[], text: string, kind: string): SessionView[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return sessions
    .filter((session) => kind === '' || session.kind === kind)
    .filter((session) => {
      const clients = session.clients?.map(({ name, version }) => `${name} ${version}`).join(' ') ?? '';
      const all =
        `${session.id} ${session.title ?? ''} ${session.owner} ${session.provider ?? ''} ${clients}`.toLowerCase();
      return words.every((word) => all.includes(word));
    })
    .sort((a, b) => b.updated_at_ms - a.updated_at_ms);
}
