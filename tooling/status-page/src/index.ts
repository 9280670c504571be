/** The launcher's status page with sample data, for tests and screenshots. */
export { launchChromium } from './chromium.js';
export { PageServer } from './page-server.js';
export { serveFixtures } from './fixture-views.js';
export { badTimes } from './fixtures/bad-times.js';
export { NOW } from './fixtures/history.js';
export { broken, busy, crowded, empty, hostile } from './scenes.js';
