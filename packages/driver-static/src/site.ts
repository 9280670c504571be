/** The first section of a site; see `nodepool init`. There is no cloud with lists to choose from. */

import type { SiteGuide } from '@nodepool/core';

export const siteGuide: SiteGuide = {
  settings: [{ key: 'hosts', question: 'host names or addresses of the machines, separated by commas' }],
  choices: {},
  section: ({ hosts = '' }, label) => {
    if (label === undefined) return {};
    const names = hosts.split(/[\s,]+/).filter((name) => name !== '');
    const { name: labelName, username } = label;
    return { pools: [{ name: 'main', nodes: names.map((name) => ({ name, labels: [labelName], username })) }] };
  },
};
