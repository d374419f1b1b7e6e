/** Where a list was scrolled to: a reader who comes back by a step in the history finds the same rows. */
import { type RefObject, useEffect, useLayoutEffect, useState } from 'react';
import { NavigationType, useLocation, useNavigationType } from 'react-router';

const PREFIX = 'switchboard-place:';

/** The place to begin at, in pixels; the place of the list is kept while it is on the screen. */
export function useScrollPlace(name: string, scroller: RefObject<HTMLElement | null>): number {
  const { pathname, search } = useLocation();
  const isBack = useNavigationType() === NavigationType.Pop;
  const key = `${PREFIX}${name}:${pathname}${search}`;
  const [place] = useState(() => (isBack ? Number(sessionStorage.getItem(key)) || 0 : 0));
  useLayoutEffect(() => {
    if (place > 0) scroller.current?.scrollTo({ top: place });
  }, [place, scroller]);
  useEffect(() => {
    const box = scroller.current;
    if (box === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const keep = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        sessionStorage.setItem(key, String(Math.round(box.scrollTop)));
      }, 200);
    };
    box.addEventListener('scroll', keep, { passive: true });
    return () => {
      clearTimeout(timer);
      box.removeEventListener('scroll', keep);
    };
  }, [key, scroller]);
  return place;
}
