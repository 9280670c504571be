/** The phases of a request as the launcher reports them. */

import type { BenchmarkEnvironment } from './environment.js';

/** The members of a request's document that are compared; times in seconds since the epoch. */
export interface RequestDocument {
  readonly request: { readonly created: number; readonly ended: number };
  readonly timeline: readonly { readonly phase: string; readonly from: number; readonly to: number }[];
}

/** Reads the document of an ended request from the launcher's web endpoint. */
export async function documentOf({ webappPort }: BenchmarkEnvironment, id: string): Promise<RequestDocument> {
  const response = await fetch(`http://127.0.0.1:${webappPort}/status/v1/request/${id}`);
  if (!response.ok) throw new Error(`the launcher answered ${response.status} for request ${id}`);
  return (await response.json()) as RequestDocument;
}
