import type { ComponentType } from 'react';
import type { RouteObject } from 'react-router';

/** One entry of the navigation and the addresses below it. */
export interface Screen {
  /** The first segment of its addresses; empty for the start. */
  path: string;
  label: string;
  icon: ComponentType<{ size?: number | string; stroke?: number | string }>;
  /** What it is for, in the palette. */
  about: string;
  /** The role that it needs. */
  role?: 'operator' | 'admin';
  /** Addresses below `path`, each loaded when it is opened. */
  routes: RouteObject[];
}
