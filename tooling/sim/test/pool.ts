/** Worker processes of the built simulation, for the tests of one file. */

import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { SimulationPool } from '../src/simulation-pool.js';

const SIZE = 2;
/** The built program: a seed takes longer in jest's module system. */
const PROGRAM = join(__dirname, '..', 'dist', 'worker.js');

export function useSimulationPool(): SimulationPool {
  const pool = new SimulationPool(SIZE, PROGRAM);
  afterAll(() => pool.close());
  return pool;
}
