/** Drivers that violate the rules about the first configuration. */

import type { SiteGuide } from '@nodepool/core';
import type { Changes } from '../acme-driver.js';
import type { Defect } from './defect.js';

/** Returns the changes for a driver whose first section has this size, and whose cloud lists images. */
function guide(size: string, choices: SiteGuide['choices']): Changes {
  const siteGuide: SiteGuide = {
    settings: [],
    choices,
    section: (_settings, label) =>
      label === undefined
        ? {}
        : {
            'cloud-images': [{ name: label.chosen.image ?? '', username: label.username }],
            pools: [{ name: 'main', labels: [{ name: label.name, 'cloud-image': label.chosen.image ?? '', size }] }],
          },
  };
  return {
    driver: (driver) => ({ ...driver, siteGuide }),
    adapter: () => ({ describeSite: async () => ({ image: { options: [{ name: 'debian' }] } }) }),
  };
}

export const siteDefects: Readonly<Record<string, Defect>> = {
  'site.described': { changes: guide('s', {}), says: /the guide has no choice image/ },
  'site.written': { changes: guide('huge', { image: 'required' }), says: /problems of the written section/ },
};
