import type { Findings } from '../measure/report.ts';
import type { Settings } from '../settings.ts';
import { startProduct, type Product } from '../systems/product.ts';
import { compare } from './compare.ts';

/** The product with few objects beside the product with many. */
export async function measureScale(settings: Settings): Promise<Findings> {
  const products: Product[] = [];
  try {
    for (const objects of [settings.objects, settings.manyObjects])
      products.push(await startProduct({ name: `${objects.toLocaleString('en')} objects`, objects }));
    return await compare(products, ['get', 'list', 'create'], settings);
  } finally {
    for (const product of products) await product.stop();
  }
}
