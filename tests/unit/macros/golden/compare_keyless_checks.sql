select d0 as k0, d1 as k1, sum(n) as n
  from (
    select /*+ REPARTITION(d0, d1) */ *
    from (
      select if(is_refused, null, d0) as d0, d1, 1 as n
      from (select xxhash64(0, if(`status` is null, 1, 0) | if(`day` is null, 2, 0), `status`, `day`) as d0, xxhash64(1, if(`status` is null, 1, 0) | if(`day` is null, 2, 0), `status`, `day`) as d1, not is_valid_utf8(`status`) or `day` not between date'0001-01-01' and date'9999-12-31' as is_refused from `shop`.`orders__next`)
      union all
      select xxhash64(0, if(`status` is null, 1, 0) | if(`day` is null, 2, 0), `status`, `day`) as d0, xxhash64(1, if(`status` is null, 1, 0) | if(`day` is null, 2, 0), `status`, `day`) as d1, -1 as n from `shop`.`orders`
    )
  )
  group by d0, d1
  having sum(n) <> 0
