select
      c0 as `id`,
      c1 as `status`,
      c2 as `price`,
      marker as `__rowMarker__`
  from (
    select /*+ COALESCE(1) */ *
    from (
      select
        if(marker = 2, k0, latest.`id`) as c0,
        latest.`status` as c1,
        latest.`price` as c2,
        marker, if(marker = 2, 0, 1) as position
      from `shop`.`changed`
      where marker >= 0
    )
    sort by position
  )
