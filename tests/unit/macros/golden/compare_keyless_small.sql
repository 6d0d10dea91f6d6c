select d0 as k0, d1 as k1, sum(n) as n
  from (
    select /*+ COALESCE(1) */ *
    from (
      select xxhash64(0, if(`status` is null, 1, 0) | if(`price` is null, 2, 0), `status`, `price`, (`price` = 0 and cast(`price` as string) like '-%')) as d0, xxhash64(1, if(`status` is null, 1, 0) | if(`price` is null, 2, 0), `status`, `price`, (`price` = 0 and cast(`price` as string) like '-%')) as d1, 1 as n from `shop`.`orders__next`
      union all
      select xxhash64(0, if(`status` is null, 1, 0) | if(`price` is null, 2, 0), `status`, `price`, (`price` = 0 and cast(`price` as string) like '-%')) as d0, xxhash64(1, if(`status` is null, 1, 0) | if(`price` is null, 2, 0), `status`, `price`, (`price` = 0 and cast(`price` as string) like '-%')) as d1, -1 as n from `shop`.`orders`
    )
  )
  group by d0, d1
  having sum(n) <> 0
