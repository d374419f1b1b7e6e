/** Keeps the end of a growing list in view while the reader is there, and lets go when they scroll away. */
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';

/** Farther than this from the end, a scroll upwards lets go. */
export const LET_GO = 24;
/** Nearer than this to the end, a scroll downwards takes hold again. */
export const TAKE_HOLD = 150;

/** Whether the end is followed after a scroll. `distance` is that from the end, `moved` is positive for downwards. */
export function follows(was: boolean, distance: number, moved: number): boolean {
  if (moved < 0) return was && distance <= LET_GO;
  if (moved > 0) return was || distance <= TAKE_HOLD;
  return was;
}

export interface FollowEnd {
  viewport: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  isFollowing: boolean;
  toEnd: () => void;
}

export function useFollowEnd(): FollowEnd {
  const viewport = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  /** Where the list was when it was last looked at, or put by this hook. */
  const place = useRef(0);
  const [isFollowing, setFollowing] = useState(true);

  const set = useCallback((value: boolean) => {
    following.current = value;
    setFollowing(value);
  }, []);

  /** Scrolls to the end. Its own scroll event must not count as one of the reader, who may be letting go at that moment. */
  const scrollToEnd = useCallback(() => {
    const box = viewport.current;
    if (box === null) return;
    box.scrollTop = box.scrollHeight;
    place.current = box.scrollTop;
  }, []);

  const toEnd = useCallback(() => {
    set(true);
    scrollToEnd();
  }, [set, scrollToEnd]);

  useEffect(() => {
    const box = viewport.current;
    const inner = content.current;
    if (box === null || inner === null) return;
    place.current = box.scrollTop;
    const distance = () => box.scrollHeight - box.clientHeight - box.scrollTop;
    const scrolled = () => {
      const next = follows(following.current, distance(), box.scrollTop - place.current);
      place.current = box.scrollTop;
      if (next !== following.current) set(next);
    };
    const letGo = () => {
      if (box.scrollHeight > box.clientHeight) set(false);
    };
    const wheel = (event: WheelEvent) => event.deltaY < 0 && letGo();
    const key = (event: KeyboardEvent) =>
      ['PageUp', 'Home', 'ArrowUp'].includes(event.key) && event.target === box && letGo();
    const grown = new ResizeObserver(() => {
      if (following.current) scrollToEnd();
    });
    grown.observe(inner);
    grown.observe(box);
    box.addEventListener('scroll', scrolled, { passive: true });
    box.addEventListener('wheel', wheel, { passive: true });
    box.addEventListener('keydown', key);
    return () => {
      grown.disconnect();
      box.removeEventListener('scroll', scrolled);
      box.removeEventListener('wheel', wheel);
      box.removeEventListener('keydown', key);
    };
  }, [set, scrollToEnd]);

  return { viewport, content, isFollowing, toEnd };
}
