select /*+ COALESCE(1) */
      c0 as `id`,
      c1 as `status`,
      c2 as `price`
  from (
    select /*+ BROADCAST(changed) */
      latest.*, changed.n, row_number() over (partition by d0, d1 order by d0) as copy
    from (
      select
        `id` as c0,
        `status` as c1,
        `price` as c2,
        xxhash64(0, if(`id` is null, 1, 0) | if(`status` is null, 2, 0) | if(`price` is null, 4, 0), `id`, `status`, `price`, (`price` = 0 and cast(`price` as string) like '-%')) as d0, xxhash64(1, if(`id` is null, 1, 0) | if(`status` is null, 2, 0) | if(`price` is null, 4, 0), `id`, `status`, `price`, (`price` = 0 and cast(`price` as string) like '-%')) as d1
      from `shop`.`orders__next`
    ) as latest
    join `shop`.`changed` as changed on latest.d0 = changed.k0 and latest.d1 = changed.k1
  )
  where copy <= n
