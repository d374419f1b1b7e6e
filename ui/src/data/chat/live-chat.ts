/**
 * The turns of one session that this tab follows. A turn goes on when its screen is left, and is picked up again after a lost
 * connection, a reload, or when another program began it.
 */
import { boardFetch } from '../../api/client';
import { onApiKeyChange } from '../../api/key';
import { ApiError, problemOf } from '../../api/problem';
import type { components } from '../../api/schema';
import { queryClient } from '../query-client';
import { eventsOf } from '../sse';
import { applyEvent, isOver, newTurn, type Turn, type TurnEvent } from './turn';
import { newTurnId } from './turn-id';

export type NewTurn = components['schemas']['NewTurn'];

export interface ChatState {
  turns: Turn[];
  /** The board does not answer, and the running turn is tried again. */
  isLost: boolean;
  /** Why the last message was not taken. */
  refusal?: { error: ApiError; text: string };
}

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 5_000;
const MOST_TURNS = 50;
const MOST_CHATS = 30;

/** 5xx answers of a board that restarts, or of a proxy before it. */
const isPassing = (error: ApiError): boolean => error.status === 0 || error.status >= 500;

export class LiveChat {
  #state: ChatState = { turns: [], isLost: false };
  readonly #listeners = new Set<() => void>();
  readonly #following = new Set<string>();
  #notice: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly session: string) {}

  readonly state = (): ChatState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** The turn that runs, as far as this tab knows. */
  running(): Turn | undefined {
    return this.#state.turns.findLast((turn) => !isOver(turn));
  }

  isIdle(): boolean {
    return this.#following.size === 0 && this.#listeners.size === 0;
  }

  /** Begins a turn. Repeated requests carry the same id, so that it begins once. */
  send(body: NewTurn, text: string): void {
    const id = newTurnId();
    this.#change({ refusal: undefined });
    this.#put(newTurn(id));
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json' };
    const path = `/api/v1/sessions/${encodeURIComponent(this.session)}/turns`;
    const begin = () => boardFetch(path, { method: 'POST', headers, body: JSON.stringify({ ...body, id }) });
    void this.#follow(id, begin, text);
  }

  /** Follows a turn that somebody else began, or that began before a reload. */
  follow(id: string): void {
    if (this.#following.has(id) || this.#state.turns.some((turn) => turn.id === id && isOver(turn))) return;
    this.#put(this.#turn(id) ?? newTurn(id));
    void this.#follow(id, () => this.#resume(id));
  }

  async cancel(): Promise<void> {
    const turn = this.running();
    if (turn === undefined) return;
    const path = `/api/v1/sessions/${encodeURIComponent(this.session)}/turns/${encodeURIComponent(turn.id)}/cancel`;
    const response = await boardFetch(path, { method: 'POST' });
    if (!response.ok && response.status !== 404) throw problemOf(response.status, await bodyOf(response));
  }

  dismissRefusal(): void {
    this.#change({ refusal: undefined });
  }

  #turn(id: string): Turn | undefined {
    return this.#state.turns.find((turn) => turn.id === id);
  }

  #resume(id: string): Promise<Response> {
    const headers: Record<string, string> = { accept: 'text/event-stream' };
    const lastId = this.#turn(id)?.lastId ?? 0;
    if (lastId > 0) headers['last-event-id'] = String(lastId);
    const path = `/api/v1/sessions/${encodeURIComponent(this.session)}/turns/${encodeURIComponent(id)}/events`;
    return boardFetch(path, { headers });
  }

  async #follow(id: string, open: () => Promise<Response>, text?: string): Promise<void> {
    this.#following.add(id);
    let pause = FIRST_PAUSE;
    let isTaken = text === undefined;
    while (!isOver(this.#turn(id) ?? newTurn(id))) {
      try {
        const response = await (isTaken ? this.#resume(id) : open());
        if (!response.ok || response.body === null) throw problemOf(response.status, await bodyOf(response));
        isTaken = true;
        pause = FIRST_PAUSE;
        this.#change({ isLost: false });
        await this.#read(id, response.body);
      } catch (error) {
        if (error instanceof ApiError && !isPassing(error)) {
          this.#giveUp(id, error, isTaken ? undefined : text);
          break;
        }
      }
      if (isOver(this.#turn(id) ?? newTurn(id))) break;
      this.#change({ isLost: true });
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
    this.#following.delete(id);
    this.#change({ isLost: false });
    void queryClient.invalidateQueries({ queryKey: ['history', this.session] });
    void queryClient.invalidateQueries({ queryKey: ['sessions'] });
  }

  async #read(id: string, body: ReadableStream<Uint8Array>): Promise<void> {
    for await (const events of eventsOf(body)) {
      let turn = this.#turn(id) ?? newTurn(id);
      for (const { id: eventId, data } of events)
        turn = applyEvent(turn, Number(eventId), JSON.parse(data) as TurnEvent);
      this.#put(turn);
      if (isOver(turn)) return;
    }
  }

  #giveUp(id: string, error: ApiError, text: string | undefined): void {
    if (text !== undefined) {
      this.#change({ turns: this.#state.turns.filter((turn) => turn.id !== id), refusal: { error, text } });
      return;
    }
    const turn = this.#turn(id);
    if (turn === undefined) return;
    // The board keeps the events of a turn for a while after its end. What was said is in the history.
    if (turn.lastId === 0) this.#change({ turns: this.#state.turns.filter((each) => each.id !== id) });
    else this.#put({ ...turn, phase: 'lost' });
  }

  #put(turn: Turn): void {
    const turns = this.#state.turns.some(({ id }) => id === turn.id)
      ? this.#state.turns.map((each) => (each.id === turn.id ? turn : each))
      : [...this.#state.turns, turn].slice(-MOST_TURNS);
    this.#change({ turns });
  }

  /** Many events of a moment are shown together. */
  #change(change: Partial<ChatState>): void {
    this.#state = { ...this.#state, ...change };
    if (this.#notice !== undefined) return;
    this.#notice = setTimeout(() => {
      this.#notice = undefined;
      for (const listener of this.#listeners) listener();
    }, 16);
  }
}

async function bodyOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

const chats = new Map<string, LiveChat>();
// What one caller saw is not for the next one.
onApiKeyChange(() => chats.clear());

export function liveChat(session: string): LiveChat {
  let chat = chats.get(session);
  if (chat === undefined) {
    if (chats.size >= MOST_CHATS) {
      for (const [id, other] of chats) if (other.isIdle()) chats.delete(id);
    }
    chat = new LiveChat(session);
    chats.set(session, chat);
  }
  return chat;
}
