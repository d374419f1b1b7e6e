/** What a person does in a chat, as turns. The message shows at once, before the board has answered. */
import { queryClient } from '../query-client';
import { withoutTail } from './conversation';
import { liveChat } from './live-chat';
import { historyQuery, type Message } from './queries';
import type { Part } from './turn';

const userMessage = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });

function show(session: string, change: (messages: Message[]) => Message[]): void {
  const { queryKey } = historyQuery(session);
  void queryClient.cancelQueries({ queryKey });
  queryClient.setQueryData(queryKey, (old) => ({ version: old?.version ?? 1, messages: change(old?.messages ?? []) }));
}

/** The stored messages as they are now: edits count them. */
async function stored(session: string): Promise<Message[]> {
  const { messages } = await queryClient.fetchQuery({ ...historyQuery(session), staleTime: 0 });
  return messages;
}

/** Says something at the end of the conversation. */
export function beginTurn(session: string, text: string): void {
  show(session, (messages) => [...messages, userMessage(text)]);
  liveChat(session).send({ message: text }, text);
}

/** Says something in the place of the message at `index`. With `persist` the conversation changes, else what the model sees. */
export async function rewriteMessage(session: string, index: number, text: string, persist: boolean): Promise<void> {
  const messages = await stored(session);
  const old = messages[index];
  // Images and files of the message stay with it.
  const others = old?.role === 'user' ? old.content.filter(({ type }) => type !== 'text') : [];
  const content: Part[] = [{ type: 'text', text }, ...others];
  show(session, () => [...(persist ? messages.slice(0, index) : messages), { role: 'user', content }]);
  liveChat(session).send({ message: content, edits: withoutTail(index, messages.length), persist }, text);
}

/** Asks again for the answer to the message at `index`; what came after it is dropped. */
export async function retryFrom(session: string, index: number): Promise<void> {
  const messages = await stored(session);
  const asked = messages[index];
  if (index === messages.length - 1 || asked?.role !== 'user') {
    liveChat(session).send({}, '');
    return;
  }
  show(session, () => messages.slice(0, index + 1));
  liveChat(session).send({ message: asked.content, edits: withoutTail(index, messages.length), persist: true }, '');
}
