/** The launcher's status page with made-up worlds behind it, for its tests and its screenshots. */
export { launchChromium } from './chromium.js';
export { PageServer } from './page-server.js';
export { serveFixtures } from './fixture-views.js';
export { badTimes } from './fixtures/bad-times.js';
export { NOW } from './fixtures/history.js';
export { broken, busy, crowded, empty, hostile } from './scenes.js';
