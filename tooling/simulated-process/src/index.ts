/** Parts of simulations of the launcher and of the builder. */
export { overlay } from './overlay.js';
export { SimulatedProcess } from './process.js';
