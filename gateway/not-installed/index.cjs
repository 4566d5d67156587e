throw new Error(
  `${module.parent?.filename ?? 'A module'} loads gateway/not-installed, which stands for packages that ` +
    'express-gateway declares and that the gateway never loads (overrides in package.json)',
);
