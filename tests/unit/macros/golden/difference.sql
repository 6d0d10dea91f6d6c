select
    c0 as `id`,
    c1 as `code`,
    case
      when min(surplus) > 0 then 'missing in the mirrored table'
      when max(surplus) < 0 then 'only in the mirrored table'
      else 'different'
    end as `difference`
  from (
    select c0, c1, c2, sum(side) as surplus
    from (
      select
        `id` as c0,
        cast(`code` as string) as c1,
        timestamp_micros(cast(cast(cast(`placed` - timestamp_ntz'1970-01-01 00:00:00' as interval second) as decimal(20, 6)) * 1000000 as bigint)) as c2,
        1 as side
      from `shop`.`orders`
      union all
      select
        cast(`id` as bigint) as c0,
        cast(`code` as string) as c1,
        cast(`placed` as timestamp) as c2,
        -1 as side
      from openmirroring_replica
    )
    group by c0, c1, c2
    having sum(side) <> 0
  )
  group by
    c0,
    c1
