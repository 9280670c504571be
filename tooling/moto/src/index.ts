/** Runs moto, a simulated AWS by other people. */
export { findMoto, MOTO_PACKAGES, type MotoInstallation } from './find-moto.js';
export { resetMoto, startMoto, type RunningMoto } from './start-moto.js';
