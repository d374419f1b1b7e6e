import { Button, NavLink, Select, Stack, Text } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { Link, useNavigate } from 'react-router';
import { Ago } from '../../components/Ago';
import { QueryState } from '../../components/states';
import type { SessionView } from '../../data/chat/queries';
import { useSessions } from '../../data/queries';

export const chatName = ({ title, id }: Pick<SessionView, 'title' | 'id'>): string => title || id;

/** Sessions that people talk in, the last used first. */
export function chatsOf(sessions: SessionView[]): SessionView[] {
  return sessions
    .filter(({ kind }) => kind === 'endpoint')
    .sort((a, b) => b.updated_at_ms - a.updated_at_ms)
    .slice(0, 200);
}

export function ChatList({ chosen }: { chosen?: string }) {
  const sessions = useSessions();
  return (
    <nav className="chat-list" aria-label="Chats" tabIndex={-1}>
      <Button component={Link} to="/chat" fullWidth variant="default" leftSection={<IconPlus size={16} />} mb="xs">
        New chat
      </Button>
      <QueryState query={sessions}>
        {(data) => {
          const chats = chatsOf(data.sessions);
          if (chats.length === 0) {
            return (
              <Text size="sm" c="dimmed">
                No chats yet.
              </Text>
            );
          }
          return (
            <Stack gap={2}>
              {chats.map((session) => (
                <NavLink
                  key={session.id}
                  component={Link}
                  to={`/chat/${encodeURIComponent(session.id)}`}
                  active={session.id === chosen}
                  aria-current={session.id === chosen ? 'page' : undefined}
                  label={chatName(session)}
                  description={<Ago at={session.updated_at_ms} size="xs" />}
                  variant="light"
                  color="gray"
                />
              ))}
            </Stack>
          );
        }}
      </QueryState>
    </nav>
  );
}

/** The same for narrow screens. */
export function ChatChooser({ chosen }: { chosen?: string }) {
  const sessions = useSessions();
  const navigate = useNavigate();
  const chats = chatsOf(sessions.data?.sessions ?? []);
  const data = chats.map((session) => ({ value: session.id, label: chatName(session) }));
  return (
    <div className="chat-narrow">
      <Select
        aria-label="Chat"
        data={[{ value: '', label: 'New chat' }, ...data]}
        value={chosen ?? ''}
        allowDeselect={false}
        searchable
        onChange={(id) => void navigate(id ? `/chat/${encodeURIComponent(id)}` : '/chat')}
      />
    </div>
  );
}
