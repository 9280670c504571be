/** Defects of fair shares. */

import { inPackage, type Mutation } from '../mutation.js';

export const FAIR_SHARES: readonly Mutation[] = inPackage('packages/launcher', [
  {
    id: 'fair-without-weights',
    file: 'fairness/fair-order.ts',
    find: 'return used / weight;',
    replace: 'return used + 0 * weight;',
    breaks: 'Tenants get capacity by their weights.',
    tests: ['fair-order.test.ts', 'fair-shares-seeds.test.ts'],
  },
  {
    id: 'fair-without-past',
    file: 'fairness/account.ts',
    find: 'past[index] + (current[index] - past[index]) * CURRENT_WEIGHT',
    replace: 'current[index]',
    breaks: 'Past use counts.',
    tests: ['fair-shares.test.ts'],
  },
  {
    id: 'fair-past-lost',
    file: 'fairness/past-use.ts',
    find: 'fair.use.restore(tenant, project, past, read?.saved.at ?? 0);',
    replace: 'fair.use.restore(tenant, project, [0, 0, 0], read?.saved.at ?? 0);',
    breaks: 'Past use survives a restart.',
    tests: ['fair-shares.test.ts'],
  },
  {
    id: 'fair-by-projects',
    file: 'fairness/fair-use.ts',
    find: 'const weight = this.weightOf(tenant);',
    replace: 'const weight = this.weightOf(tenant) * Math.max(1, this.accounts.get(tenant)?.projects.size ?? 1);',
    breaks: 'A tenant with many projects gains nothing.',
    tests: ['fair-shares.test.ts'],
  },
  {
    id: 'fair-starvation',
    file: 'fairness/starvation.ts',
    find: 'if (isDue) this.seniors.set(tenant, { request, since: now });',
    replace: 'if (!isDue) this.seniors.set(tenant, { request, since: now });',
    breaks: 'No request starves.',
    tests: ['fair-starvation.test.ts'],
  },
  {
    id: 'fair-priority-of-tenants',
    file: 'fairness/fair-order.ts',
    find: 'return levelOf(facts.tenant(a.tenant_name)) - levelOf(facts.tenant(b.tenant_name)) || compareRequests(a, b);',
    replace: 'return compareRequests(a, b);',
    breaks: 'Priorities decide within a tenant only.',
    tests: ['fair-shares.test.ts'],
  },
  {
    id: 'fair-not-lent',
    file: 'fairness/service-order.ts',
    find: 'return isBelowShare(facts.tenant(earlier.tenant_name)) && !isBelowShare(facts.tenant(later.tenant_name));',
    replace: 'return true;',
    breaks: 'Capacity that a waiting request cannot use yet is lent within the backfill window.',
    tests: ['fair-starvation.test.ts'],
  },
  {
    id: 'fair-always',
    file: 'fairness/service-order.ts',
    find: 'return priorityOf(earlier.id) < priorityOf(later.id);',
    replace: 'return false;',
    breaks: 'Without shares, the order is the recorded one.',
    tests: ['recorded-order.test.ts'],
  },
]);
