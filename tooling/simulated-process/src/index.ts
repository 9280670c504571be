/** Shared parts of the simulations of launcher and builder. */
export { overlay } from './overlay.js';
export { SimulatedProcess } from './process.js';
