/** What a person does in a chat, as turns. The message shows at once, before the board has answered. */
import { queryClient } from '../query-client';
import { withoutTail } from './conversation';
import { liveChat } from './live-chat';
import { historyQuery, type Message } from './queries';

const userMessage = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });

function show(session: string, change: (messages: Message[]) => Message[]): void {
  const { queryKey } = historyQuery(session);
  void queryClient.cancelQueries({ queryKey });
  queryClient.setQueryData(queryKey, (old) => ({ version: old?.version ?? 1, messages: change(old?.messages ?? []) }));
}

const count = (session: string): number =>
  queryClient.getQueryData(historyQuery(session).queryKey)?.messages.length ?? 0;

/** Says something at the end of the conversation. */
export function beginTurn(session: string, text: string): void {
  show(session, (messages) => [...messages, userMessage(text)]);
  liveChat(session).send({ message: text }, text);
}

/** Says something in the place of the message at `index`. With `persist` the conversation changes, else what the model sees. */
export function rewriteMessage(session: string, index: number, text: string, persist: boolean): void {
  const edits = withoutTail(index, count(session));
  show(session, (messages) => [...(persist ? messages.slice(0, index) : messages), userMessage(text)]);
  liveChat(session).send({ message: text, edits, persist }, text);
}

/** Asks again for the answer to the message at `index`; what came after it is dropped. */
export function retryFrom(session: string, index: number): void {
  const edits = withoutTail(index + 1, count(session));
  show(session, (messages) => messages.slice(0, index + 1));
  liveChat(session).send(edits.length === 0 ? {} : { edits, persist: true }, '');
}
