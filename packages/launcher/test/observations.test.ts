/** Tests of what the record of a node in a trial says about its image. */

import { describe, expect, it } from '@jest/globals';
import type { Node, NodeTrial } from '@nodepool/core';
import { nodeWith } from '@nodepool/core/testing';
import { observationsOf } from '../src/images/observations.js';

const trial: NodeTrial = { upload: 'u', candidate: true, share: 0.1, launch: 'ready', seconds: 30 };
const kindsOf = (facts: Partial<Node>): string[] =>
  observationsOf(nodeWith({ id: 'n', state: 'used', trial, ...facts })).map(({ kind }) => kind);

describe('the observations of a node', () => {
  it('include the result of its job', () => {
    expect(kindsOf({ job_result: 'failure' })).toEqual(['launch', 'job', 'end']);
    expect(kindsOf({ job_result: null })).toEqual(['launch', 'end']);
  });

  it('omit the result of a job whose node was interrupted', () => {
    const interruption = {
      kind: 'reclaimed',
      reason: 'its spot instance is reclaimed',
      time: 1,
      ends_at: null,
    } as const;
    expect(kindsOf({ job_result: 'failure', interruption })).toEqual(['launch', 'end']);
    expect(kindsOf({ job_result: 'success', interruption })).toEqual(['launch', 'end']);
  });
});
