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
        select if(not is_valid_utf8(`status`) or `day` not between date'0001-01-01' and date'9999-12-31', null, `id`) as k0, cast(`code` as string) as k1, xxhash64(0, if(`status` is null, 1, 0) | if(`day` is null, 2, 0), `status`, `day`) as d0, 1 as n, 0 as p
        from `shop`.`orders__next` union all
        select `id` as k0, cast(`code` as string) as k1, xxhash64(0, if(`status` is null, 1, 0) | if(`day` is null, 2, 0), `status`, `day`) as d0, 0 as n, 1 as p
        from `shop`.`orders`
      )
    )
    group by k0, k1
  )
  where n <> 1 or p <> 1 or differs or k0 is null or k1 is null
