/** The interface of a page: the views that it draws. */

import type { Child } from './dom.js';
import type { LauncherStatus } from './model.js';
import type { Route } from './route.js';
import type { Present } from './widgets.js';

export interface Drawing<D> {
  readonly document: D;
  readonly launcher: LauncherStatus;
  readonly route: Route;
  readonly present: Present;
}

export interface View<D> {
  /** Title of the browser's window. */
  readonly title: (route: Route) => string;
  readonly draw: (drawing: Drawing<D>) => readonly Child[];
}
