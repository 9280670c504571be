/** All deliberate defects, by the part of the repository that they change. */

import type { Mutation } from '../mutation.js';

export const MUTATIONS: readonly Mutation[] = [];
