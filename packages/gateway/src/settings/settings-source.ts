/** The files of the settings, for `LiveSettings`. */

import type { LiveSettingsOptions } from '@nodepool/daemon';
import { SETTINGS_PROBLEMS } from '../metrics.js';
import { readSettings, type Settings } from './settings.js';

type SettingsSource = Pick<LiveSettingsOptions<Settings>, 'read' | 'files' | 'problems' | 'describe'>;

export function settingsSource(file: string): SettingsSource {
  return {
    read: () => readSettings(file),
    files: ({ tokenFile, tls }) => [file, tokenFile, tls?.cert, tls?.key].filter((each) => each !== undefined),
    problems: SETTINGS_PROBLEMS,
    describe: ({ tokens }) => ({ tokens: tokens.length }),
  };
}
