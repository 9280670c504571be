/** Time, chance and logging for tests and simulations. */
export { VirtualClock, type VirtualClockOptions } from './virtual-clock.js';
export { seededRandom } from '../runtime/random.js';
export { silentLogger } from '../runtime/logger.js';
