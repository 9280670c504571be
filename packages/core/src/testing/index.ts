/** Time, randomness, logging, records and signals for tests and simulations. */
export { nodeDataWith, nodeWith, requestWith } from './records.js';
export { signalIfThere } from './signal-if-there.js';
export { VirtualClock, type VirtualClockOptions } from './virtual-clock.js';
export { seededRandom } from '../runtime/random.js';
export { silentLogger } from '../runtime/logger.js';
