insert into `shop`.`orders` (`id`, `it's ``odd```) select `id`, `it's ``odd``` from `shop`.`orders__next`
