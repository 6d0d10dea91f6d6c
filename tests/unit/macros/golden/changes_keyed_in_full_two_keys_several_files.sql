select
      c0 as `status`,
      c1 as `code`,
      c2 as `id`,
      marker as `__rowMarker__`
  from (
    select /*+ REPARTITION_BY_RANGE(2, position, c1, c2) */ *
    from (
      select
        latest.`status` as c0,
        if(marker = 2, k1, cast(latest.`code` as string)) as c1,
        if(marker = 2, k0, latest.`id`) as c2,
        marker, if(marker = 2, 0, 1) as position
      from `shop`.`changed`
      where marker >= 0
    )
    sort by position
  )
