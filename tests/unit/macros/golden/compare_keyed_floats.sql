select k0, k1, case
      when n > 1 or k0 is null or k1 is null then cast(null as int)
      when n = 0 then 2
      when p = 1 and not differs then -1
      when p > 0 then 1
      else 4
    end as marker
  from (
    select k0, k1, sum(n) as n, sum(p) as p, min(d0) <> max(d0) as differs
    from (
      select /*+ REPARTITION(k0, k1) */ *
      from (
        select `id` as k0, `price` as k1, xxhash64(0, if(`status` is null, 1, 0) | if(`price` is null, 2, 0), `status`, `price`, (`price` = 0 and cast(`price` as string) like '-%')) as d0, 1 as n, 0 as p
        from `shop`.`orders__next` union all
        select `id` as k0, `price` as k1, xxhash64(0, if(`status` is null, 1, 0) | if(`price` is null, 2, 0), `status`, `price`, (`price` = 0 and cast(`price` as string) like '-%')) as d0, 0 as n, 1 as p
        from `shop`.`orders`
      )
    )
    group by k0, k1
  )
  where n <> 1 or p <> 1 or differs or k0 is null or k1 is null
