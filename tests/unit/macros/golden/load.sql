select /*+ COALESCE(3) */
    `id` as `id`,
    `status` as `status`,
    `price` as `price`
  from `shop`.`orders__next`
