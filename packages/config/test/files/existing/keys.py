"""Writes the keys that the Python Nodepool's configuration schemas have, as JSON.

Usage: PYTHONPATH=CHECKOUT python3 keys.py > keys.json

CHECKOUT contains the package nodepool; voluptuous must be installed. All other modules are replaced by stand-ins,
because the schemas do not need them.
"""

import importlib
import importlib.abc
import importlib.machinery
import json
import sys
from unittest.mock import MagicMock

import voluptuous
import yaml  # noqa: F401

DRIVERS = ['aws', 'azure', 'gce', 'ibmvpc', 'kubernetes', 'metastatic', 'openshift', 'openshiftpods', 'openstack',
           'static']


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports every third-party module as an empty one."""

    def find_spec(self, name, path, target=None):
        top = name.split('.')[0]
        if top in sys.stdlib_module_names or top in ('nodepool', 'voluptuous', 'yaml', '_yaml'):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__ = []
        module.__spec__ = spec
        return module

    def exec_module(self, module):
        pass


def keys(schema):
    """Returns the keys of a schema as a tree; `*` stands for any key, and null for a value without keys."""
    if isinstance(schema, voluptuous.Schema):
        found = keys(schema.schema)
        return {**found, '*': None} if schema.extra == voluptuous.ALLOW_EXTRA else found
    if isinstance(schema, voluptuous.Marker):
        return keys(schema.schema)
    if isinstance(schema, voluptuous.All):
        trees = [keys(each) for each in schema.validators]
        # A value must satisfy all schemas, so those that allow any key do not add one.
        strict = [tree for tree in trees if tree is not None and '*' not in tree]
        return merged(strict or trees)
    if isinstance(schema, voluptuous.Any):
        return merged([keys(each) for each in schema.validators])
    if isinstance(schema, list):
        return merged([keys(each) for each in schema])
    if isinstance(schema, dict):
        return merged([{name: keys(value)} for key, value in schema.items() for name in names(key)])
    return {'*': None} if schema is dict else None


def names(key):
    """Returns the names that a key of a schema stands for."""
    if isinstance(key, voluptuous.Marker):
        return names(key.schema)
    if isinstance(key, voluptuous.Any):
        return [name for each in key.validators for name in names(each)]
    return ['*'] if isinstance(key, type) else [key]


def merged(trees):
    found = None
    for tree in trees:
        if tree is None:
            continue
        found = dict(found or {})
        for name, below in tree.items():
            found[name] = merged([found.get(name), below])
    return found


def main():
    sys.meta_path.insert(0, StandIn())
    from nodepool.cmd.config_validator import ConfigValidator
    from nodepool.driver import ProviderConfig

    known = {'nodepool.yaml': keys(ConfigValidator.getSchema()), 'providers': {}}
    for driver in DRIVERS:
        module = importlib.import_module('nodepool.driver.%s.config' % driver)
        [config] = [each for each in vars(module).values()
                    if isinstance(each, type) and each is not ProviderConfig and issubclass(each, ProviderConfig)
                    and each.__module__ == module.__name__]
        schema = config.getSchema(MagicMock(spec=config))
        known['providers'][driver] = keys(schema.extend(ProviderConfig.getCommonSchemaDict()))
    json.dump(known, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write('\n')


main()
