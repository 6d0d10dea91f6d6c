create table `shop`.`orders__next`
    using orc
  options ('timeZone' 'UTC', 'it\'s' 'a \'quote\'')
  partitioned by (`day`, `it's ``odd```)
  as
  select 1 as `id`, 'a' as `status`
