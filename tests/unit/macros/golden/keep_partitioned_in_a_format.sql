create table `shop`.`new_rows`
    using orc options ('timeZone' 'UTC') partitioned by (`day`) as
  select 1 as `id`, 'a' as `status`
