/**
 * The one event stream of this tab (`GET /api/v1/events`).
 *
 * It is read with `fetch`, because `EventSource` cannot send a key. It resumes with `Last-Event-ID`, reconnects by itself
 * with growing pauses, and is closed while the tab is hidden for long: browsers open six connections to a board in all tabs
 * together. A board without the stream is polled instead.
 */
import { createParser } from 'eventsource-parser';
import { boardFetch } from '../api/client';

export type StreamStatus = 'connecting' | 'live' | 'polling' | 'disconnected' | 'paused' | 'refused';

export interface BoardEvent {
  type: string;
  data: Record<string, unknown>;
}

export interface StreamState {
  status: StreamStatus;
  /** When the status began, in milliseconds since 1970. */
  since: number;
}

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5_000;
/** Comments come every 15 s. A stream that is silent for longer than this is dead. */
const SILENCE = 40_000;
const HIDDEN_FOR = 60_000;

export class EventStream {
  #state: StreamState = { status: 'connecting', since: Date.now() };
  readonly #stateListeners = new Set<() => void>();
  readonly #eventListeners = new Set<(event: BoardEvent) => void>();
  #lastId: string | undefined;
  #pause = FIRST_PAUSE;
  #abort: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #hiding: ReturnType<typeof setTimeout> | undefined;
  #running = false;

  readonly state = (): StreamState => this.#state;

  readonly onState = (listener: () => void): (() => void) => {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  };

  readonly onEvent = (listener: (event: BoardEvent) => void): (() => void) => {
    this.#eventListeners.add(listener);
    return () => this.#eventListeners.delete(listener);
  };

  start(): void {
    if (this.#running) return;
    this.#running = true;
    document.addEventListener('visibilitychange', this.#visibility);
    window.addEventListener('online', this.#retryNow);
    void this.#connect();
  }

  stop(): void {
    this.#running = false;
    document.removeEventListener('visibilitychange', this.#visibility);
    window.removeEventListener('online', this.#retryNow);
    this.#close();
  }

  /** Connects again at once, as after a change of the key. */
  restart(): void {
    this.#close();
    this.#lastId = undefined;
    this.#pause = FIRST_PAUSE;
    if (this.#running) void this.#connect();
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = undefined;
  }

  readonly #retryNow = (): void => {
    if (!this.#running || this.#state.status === 'live') return;
    this.#close();
    this.#pause = FIRST_PAUSE;
    void this.#connect();
  };

  readonly #visibility = (): void => {
    clearTimeout(this.#hiding);
    if (document.visibilityState === 'visible') {
      if (this.#state.status !== 'live') this.#retryNow();
    } else {
      this.#hiding = setTimeout(() => {
        this.#close();
        this.#set('paused');
      }, HIDDEN_FOR);
    }
  };

  #set(status: StreamStatus): void {
    if (status === this.#state.status) return;
    this.#state = { status, since: Date.now() };
    for (const listener of this.#stateListeners) listener();
  }

  #emit(event: BoardEvent): void {
    for (const listener of this.#eventListeners) listener(event);
  }

  async #connect(): Promise<void> {
    const abort = new AbortController();
    this.#abort = abort;
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), SILENCE);
    };
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' };
      if (this.#lastId !== undefined) headers['last-event-id'] = this.#lastId;
      heard();
      const response = await boardFetch('/api/v1/events', { headers, signal: abort.signal });
      if (response.status === 404) return await this.#poll(abort);
      if (response.status === 401 || response.status === 403) {
        this.#set('refused');
        this.#emit({ type: 'refused', data: {} });
        return;
      }
      if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
      const isReconnect = this.#state.status === 'disconnected' || this.#state.status === 'paused';
      this.#set('live');
      this.#pause = FIRST_PAUSE;
      if (isReconnect) this.#emit({ type: 'reconnected', data: {} });
      await this.#read(response.body, heard);
    } catch {
      // The reason does not matter: the board is asked again.
    } finally {
      clearTimeout(silence);
    }
    if (this.#abort !== abort) return;
    if (this.#running && this.#state.status !== 'refused') this.#later();
  }

  async #read(body: ReadableStream<Uint8Array>, heard: () => void): Promise<void> {
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        if (id !== undefined) this.#lastId = id;
        try {
          this.#emit({ type: event ?? 'message', data: JSON.parse(data) as Record<string, unknown> });
        } catch {
          // An event that is not JSON is none of this program's.
        }
      },
    });
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      parser.feed(value);
    }
  }

  /** A board without the stream: asks whether it is there, and lets the queries refetch. */
  async #poll(abort: AbortController): Promise<void> {
    while (!abort.signal.aborted) {
      try {
        await boardFetch('/healthz', { signal: abort.signal });
        this.#set('polling');
      } catch {
        if (abort.signal.aborted) return;
        this.#set('disconnected');
      }
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    }
  }

  #later(): void {
    this.#set('disconnected');
    this.#timer = setTimeout(() => void this.#connect(), this.#pause);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }
}

export const eventStream = new EventStream();
