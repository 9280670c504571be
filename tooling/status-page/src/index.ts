/** The launcher's status page with made-up worlds behind it, for its tests and its screenshots. */
export { launchChromium } from './chromium.js';
export { PageServer } from './page-server.js';
export { broken, busy, crowded, empty, hostile } from './scenes.js';
